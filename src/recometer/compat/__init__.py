"""Drop-in functions with the signatures of other libraries, with a module for each library."""
