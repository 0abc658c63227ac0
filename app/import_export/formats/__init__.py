"""Question formats, one module each."""
