"""Questions: what each kind is, and the one place where everybody asks for it."""
