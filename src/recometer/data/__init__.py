"""What comes in: interactions, catalogues and ids, from frames, files, arrays and tensors."""
