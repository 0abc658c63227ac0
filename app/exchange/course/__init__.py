"""The files of a course: items read from them, and items written into them."""
