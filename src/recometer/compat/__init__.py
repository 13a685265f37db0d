"""Drop-in functions with other libraries' signatures, a module for each library."""
