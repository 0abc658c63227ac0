"""Questions, their types, and grading."""
