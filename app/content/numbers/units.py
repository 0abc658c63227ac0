"""The units of questions: those of the estimates, and those of other subjects."""

from app.estimator import units as estimated

# As (base unit, factor to the base). Factors of the SI and of the units beside it are
# exact by definition, https://www.bipm.org/en/publications/si-brochure (tables 4 and 8)
# and https://www.nist.gov/pml/special-publication-811 (appendix B.8).
_LENGTH = {
    "nm": ("m", 1e-9),
    "µm": ("m", 1e-6),
    "mm": ("m", 1e-3),
    "cm": ("m", 1e-2),
    "m": ("m", 1.0),
    "km": ("m", 1e3),
    "ft": ("m", 0.3048),
    "mi": ("m", 1609.344),
}
_AREA = {
    "cm²": ("m*m", 1e-4),
    "m²": ("m*m", 1.0),
    "ha": ("m*m", 1e4),
    "km²": ("m*m", 1e6),
}
_VOLUME = {
    "µL": ("L", 1e-6),
    "mL": ("L", 1e-3),
    "cL": ("L", 1e-2),
    "dL": ("L", 0.1),
    "L": ("L", 1.0),
    "cm³": ("L", 1e-3),
    "m³": ("L", 1e3),
}
_FLOW = {
    "mL/h": ("L/s", 1e-3 / 3600),
    "mL/min": ("L/s", 1e-3 / 60),
    "L/h": ("L/s", 1 / 3600),
    "L/min": ("L/s", 1 / 60),
    "L/s": ("L/s", 1.0),
}
_MASS = {
    "µg": ("kg", 1e-9),
    "mg": ("kg", 1e-6),
    "g": ("kg", 1e-3),
    "lb": ("kg", 0.45359237),
}
_SUBSTANCE = {
    "µmol": ("mol", 1e-6),
    "mmol": ("mol", 1e-3),
    "mol": ("mol", 1.0),
}
_CONCENTRATION = {
    "µmol/L": ("mol/L", 1e-6),
    "mmol/L": ("mol/L", 1e-3),
    "mol/L": ("mol/L", 1.0),
    "µg/L": ("kg/L", 1e-9),
    "mg/L": ("kg/L", 1e-6),
    "mg/dL": ("kg/L", 1e-5),
    "g/dL": ("kg/L", 1e-2),
    "g/L": ("kg/L", 1e-3),
    "kg/L": ("kg/L", 1.0),
}
_MOTION = {
    "mm/s": ("m/s", 1e-3),
    "m/s": ("m/s", 1.0),
    "km/h": ("m/s", 1 / 3.6),
    "mph": ("m/s", 0.44704),
    "m/s²": ("m/s*s", 1.0),
}
_FORCE = {
    "N": ("N", 1.0),
    "kN": ("N", 1e3),
    "Pa": ("Pa", 1.0),
    "hPa": ("Pa", 1e2),
    "kPa": ("Pa", 1e3),
    "MPa": ("Pa", 1e6),
    "mbar": ("Pa", 1e2),
    "bar": ("Pa", 1e5),
    "mmHg": ("Pa", 133.322387415),
}
_ENERGY = {
    "J": ("Wh", 1 / 3600),
    "kJ": ("Wh", 1e3 / 3600),
    "MJ": ("Wh", 1e6 / 3600),
    "GJ": ("Wh", 1e9 / 3600),
    "kcal": ("Wh", 4184 / 3600),
}
_RATE = {
    "rpm": ("1/s", 1 / 60),
    "Hz": ("1/s", 1.0),
    "kHz": ("1/s", 1e3),
    "MHz": ("1/s", 1e6),
    "GHz": ("1/s", 1e9),
}
_ELECTRICITY = {
    "mA": ("A", 1e-3),
    "kA": ("A", 1e3),
    "mV": ("V", 1e-3),
    "kV": ("V", 1e3),
    "Ω": ("Ω", 1.0),
    "kΩ": ("Ω", 1e3),
    "MΩ": ("Ω", 1e6),
    "Ah": ("Ah", 1.0),
    "mAh": ("Ah", 1e-3),
}
_ALONE = ("K", "°F", "°")
_TIME = {"week": ("s", 604800.0), "weeks": ("s", 604800.0)}
# ISO 4217, https://www.six-group.com/en/products-services/financial-information/data-standards.html
_CURRENCIES = """
AED ARS AUD BDT BGN BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR ISK
JPY KES KRW MAD MXN MYR NGN NOK NZD PEN PHP PKR PLN RON RSD SAR SEK SGD THB TRY TWD UAH
VND ZAR
"""
CURRENCIES = ("USD", *_CURRENCIES.split())
"""Currencies by their codes."""
_SIGNS = {"€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR"}

UNITS: dict[str, tuple[str, float]] = {
    **estimated.UNITS,
    **_TIME,
    **_LENGTH,
    **_AREA,
    **_VOLUME,
    **_FLOW,
    **_MASS,
    **_SUBSTANCE,
    **_CONCENTRATION,
    **_MOTION,
    **_FORCE,
    **_ENERGY,
    **_RATE,
    **_ELECTRICITY,
    **{unit: (unit, 1.0) for unit in _ALONE},
    **{code: (code, 1.0) for code in CURRENCIES},
    **{sign: (code, 1.0) for sign, code in _SIGNS.items()},
}
"""Every unit that a question may ask for, and that an answer may be typed in."""

_POWERS = {"m2": "m²", "cm2": "cm²", "km2": "km²", "m3": "m³", "cm3": "cm³"}
_POWERS |= {"m/s2": "m/s²"}
TYPED = {
    **_POWERS,
    **{f"{name[:-1]}^{name[-1]}": unit for name, unit in _POWERS.items()},
    "Ohm": "Ω",
    "ohm": "Ω",
    "kOhm": "kΩ",
    # The ordinal sign and the ring of keyboards that have no degree sign.
    **{f"{sign}{scale}": f"°{scale}" for sign in "º˚" for scale in ("C", "F", "")},
    "l": "L",
    "ml": "mL",
    "dl": "dL",
    "l/min": "L/min",
    "mmol/l": "mmol/L",
    "mg/dl": "mg/dL",
    "g/l": "g/L",
}
"""How units are typed on a keyboard, and how they are written."""
