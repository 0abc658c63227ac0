"""Where the calculator of an estimate stands, with its inputs and a place on it."""


def calculator_url(name: str, query: str = "", *, part: str = "", anchor: str = "") -> str:
    """The address of a calculator, or of a `part` of it such as `result`.

    >>> calculator_url("kv-cache", "context=8k", anchor="total")
    '/calculators/kv-cache?context=8k#total'
    """
    path = f"/calculators/{name}{'/' if part else ''}{part}"
    asked = f"{path}?{query}" if query else path
    return f"{asked}#{anchor}" if anchor else asked
