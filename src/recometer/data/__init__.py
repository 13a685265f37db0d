"""Input data: interactions, catalogues and ids, from frames, files, arrays and tensors."""
