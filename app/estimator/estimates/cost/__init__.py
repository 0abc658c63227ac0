"""The estimate `cost`: renting accelerators against owning them."""
