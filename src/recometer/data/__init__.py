"""Reads input data (interactions, catalogues, ids) from frames, files, arrays and tensors."""
