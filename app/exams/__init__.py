"""Mock exams: a paper drawn by blueprint, sat against the clock, reported fairly."""
