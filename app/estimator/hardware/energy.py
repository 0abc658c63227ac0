"""Energy and carbon of work done on accelerators."""


def energy(gpu_seconds: float, watts: float, pue: float = 1.0) -> float:
    """Energy drawn from the grid [W·s].

    E = GPU-time·P·PUE.

    Where:
        gpu_seconds: accelerators times their running time [s].
        watts: power per accelerator, with its share of the host if wanted [W].
        pue: power of the whole site over that of the machines [1], at least 1.

    Source: llama-1, table 15.

    >>> round(energy(82432 * 3600.0, 400.0, 1.1) / 3.6e9, 3)
    36.27
    """
    if pue < 1:
        raise ValueError(f"a PUE below 1 is impossible: {pue}")
    return gpu_seconds * watts * pue


def carbon(energy_drawn: float, kg_per_kwh: float) -> float:
    """Carbon dioxide for energy from a grid [kg].

    Where:
        energy_drawn: energy [W·s].
        kg_per_kwh: carbon intensity of the grid [kg/kWh].

    Source: llama-2, table 2.

    >>> carbon(3.6e6, 0.385)
    0.385
    """
    return energy_drawn / 3.6e6 * kg_per_kwh
