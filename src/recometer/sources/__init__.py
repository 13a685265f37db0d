"""Model output -> `Ranks`: a family of files for each kind of output."""
