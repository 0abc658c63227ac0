"""The plan toward the exam."""
