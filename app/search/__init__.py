"""Search over pages, glossary, cards, calculators, hardware; it shows no answer."""
