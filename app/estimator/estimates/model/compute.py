"""The numbers of `model`."""

from app.estimator.estimates.model.asked import ModelInputs
from app.estimator.models.architecture import Architecture
from app.estimator.models.config import UnreadableConfigError
from app.estimator.models.lookup import find_model
from app.estimator.models.pasted import read_pasted
from app.estimator.shared_inputs import input_error


def model_of(asked: ModelInputs) -> Architecture:
    """The model asked about; BadInputs says what is wrong with a configuration."""
    pasted = asked.config.strip()
    if not pasted:
        return find_model(asked.model)
    try:
        return read_pasted(pasted)
    except UnreadableConfigError as error:
        raise input_error("config", pasted[:40], str(error)) from error
