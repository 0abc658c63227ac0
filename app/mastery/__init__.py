"""From answers, cards and pages to what is known: pure rules, no estimate unearned."""
