"""Questions: asking, grading, practicing, and what an answer leads to."""
