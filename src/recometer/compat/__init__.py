"""Drop-in functions with the signatures of other libraries, in a module for each library."""
