"""Languages: text → checked definition → answer. Pure: no I/O, no clock, no database."""
