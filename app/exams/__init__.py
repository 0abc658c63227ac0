"""Mock exams."""
