"""Sizes and rates of what training stores: data sets and checkpoints."""


def dataset_bytes(tokens: float, bytes_per_token: float) -> float:
    """Bytes of a tokenized data set on disk [B].

    >>> dataset_bytes(15.6e12, 4)
    62400000000000.0
    """
    return tokens * bytes_per_token


def read_rate(tokens_per_second: float, bytes_per_token: float) -> float:
    """Bytes per second that training reads to stay fed [B/s].

    >>> read_rate(2e6, 4)
    8000000.0
    """
    return tokens_per_second * bytes_per_token


def checkpoint_bytes(parameters: float, bytes_per_parameter: float = 14.0) -> float:
    """Size of a checkpoint [B].

    14 bytes per parameter hold 16-bit weights, their 32-bit copy and both
    moments of Adam; 12 without the 16-bit copy; 2 are weights alone.

    Source: zero, whose 16 bytes include gradients, which are not saved. Checkpoints
    of mlperf-storage have the same size.

    >>> checkpoint_bytes(70e9)
    980000000000.0
    """
    return parameters * bytes_per_parameter


def write_rate(size: float, seconds: float) -> float:
    """Bandwidth that writes `size` bytes in `seconds` [B/s].

    >>> write_rate(9.8e11, 98.0)
    10000000000.0
    """
    if seconds <= 0:
        raise ValueError("the time to write must be positive")
    return size / seconds
