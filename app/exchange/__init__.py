"""Questions, cards and attempts on their way in from and out to other programs."""
