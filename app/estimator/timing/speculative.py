"""Speculative decoding: a small model proposes, the large one verifies."""


def tokens_per_step(acceptance: float, draft_tokens: int) -> float:
    """Expected tokens from one verification by the large model [token].

    (1 − α^{γ+1}) / (1 − α), and γ + 1 when everything is accepted.

    Where:
        acceptance: probability α that a proposed token is accepted [1], 0 to 1.
        draft_tokens: proposed tokens per step γ [token], at least 0.

    Source: leviathan-2023, equation 1.

    >>> round(tokens_per_step(0.8, 4), 4)
    3.3616
    """
    if not 0 <= acceptance <= 1:
        raise ValueError(f"the acceptance must lie between 0 and 1, not {acceptance}")
    if draft_tokens < 0:
        raise ValueError(f"draft tokens cannot be negative: {draft_tokens}")
    if acceptance == 1:
        return draft_tokens + 1.0
    return (1 - acceptance ** (draft_tokens + 1)) / (1 - acceptance)
