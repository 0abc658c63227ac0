"""The estimate `kv-cache`: what the cache of a model takes, per token and in all."""

from app.estimator.estimate import Estimate
from app.estimator.estimates.kv_cache.asked import KvCacheInputs
from app.estimator.estimates.kv_cache.compute import find
from app.estimator.estimates.kv_cache.words import (
    OUTPUTS,
    figures,
    notes,
    picture,
    steps,
    table,
    verdict,
)
from app.estimator.memory.sharding import tensor_parallel_problem
from app.estimator.models.formats import CACHE_BITS
from app.estimator.models.lookup import find_model
from app.estimator.registry import EstimateSpec
from app.estimator.shared_inputs import input_error


def estimate(asked: KvCacheInputs) -> Estimate:
    """Bytes of the cache per token, per sequence, in all and on one GPU."""
    model = find_model(asked.model)
    gpus = asked.tensor_parallel
    problem = tensor_parallel_problem(model, gpus)
    if problem:
        raise input_error("tensor_parallel", gpus, problem)
    found, width = find(model, asked), CACHE_BITS[asked.cache] / 8
    return Estimate(
        name="kv-cache",
        verdict=verdict(model, asked, found),
        figures=figures(found),
        steps=steps(model, asked, found),
        pictures=(picture(model, asked, found, width),),
        tables=(table(model, asked, width),),
        notes=notes(model, asked, found),
    )


ENTRY = EstimateSpec(
    name="kv-cache",
    title="KV cache",
    summary="What cached keys and values take, per token, sequence and GPU.",
    group="Memory",
    inputs=KvCacheInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("total", "per_token", "per_gpu"),
    topic="inference-memory",
)
