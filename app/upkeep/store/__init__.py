"""The databases themselves, copied, counted and put back."""
