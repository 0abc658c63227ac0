"""Search over pages, glossary, card fronts and calculators; it shows no answer."""
