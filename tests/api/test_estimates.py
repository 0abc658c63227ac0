"""/api/v1: estimates as JSON, refused by field, described by OpenAPI."""

import pytest
from pydantic import ValidationError

from app.api.openapi import Answer, build_pydantic_model_of_inputs
from app.estimator import registry
from app.estimator.inputs import input_specs
from tests.amounts import each_of_sample

PATH = "/api/v1/estimates/inference-memory"


def figure(answer, name):
    return next(f for f in answer.json()["figures"] if f["name"] == name)


def test_words_in_the_address_and_numbers_in_the_body_give_the_same_answer(client):
    by_address = client.get(f"{PATH}?model=70B&context=128k&memory_utilization=85")
    body = {"model": "70B", "context": 128000, "memory_utilization": 0.85}
    by_body = client.post(PATH, json=body)
    assert by_address.status_code == by_body.status_code == 200
    assert by_address.json() == by_body.json()


def test_an_answer_is_in_base_units_with_interval_working_and_verdict(client):
    answer = client.get(f"{PATH}?model=70B")
    weights = figure(answer, "weights")
    expected = registry.run_estimate("inference-memory", {"model": "70B"})
    assert weights["value"] == expected["weights"].value
    assert weights["unit"] == "B"
    assert weights["exact"]
    per_gpu = figure(answer, "per_gpu")
    assert per_gpu["low"] < per_gpu["value"] < per_gpu["high"]
    assert answer.json()["verdict"]["status"] in {"fits", "tight", "no"}
    assert answer.json()["steps"]


@each_of_sample("name", [e.name for e in registry.list_estimates()], 5)
def test_every_answer_has_the_promised_shape_and_figures(client, name):
    answer = client.get(f"/api/v1/estimates/{name}")
    assert answer.status_code == 200
    Answer.model_validate(answer.json())
    promised = {output.name for output in registry.find_estimate(name).outputs}
    assert promised <= {f["name"] for f in answer.json()["figures"]}


def references(node):
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_every_mistake_is_named_with_its_field(client):
    answer = client.post(PATH, json={"context": "5x", "gpu": "H9000", "color": 1})
    assert answer.status_code == 422
    problems = {p["field"]: p["message"] for p in answer.json()["problems"]}
    assert set(problems) == {"context", "gpu", "color"}
    assert problems["context"].startswith("“5x” for context cannot be read")


@pytest.mark.parametrize("body", ["[1]", "{", '"70B"', "\x00", '{"context": 1e999}'])
def test_a_body_that_is_no_object_of_inputs_is_refused(client, body):
    answer = client.post(PATH, content=body)
    assert answer.status_code == 422
    assert answer.json()["problems"][0]["message"]


def test_an_empty_body_is_answered_with_the_defaults(client):
    assert client.post(PATH).json() == client.get(PATH).json()


def test_an_estimate_that_is_none_is_not_found_as_json(client):
    answer = client.get("/api/v1/estimates/nothing")
    assert answer.status_code == 404
    assert "There is no estimate “nothing”." in answer.json()["problems"][0]["message"]


def test_the_list_gives_inputs_with_units_ranges_and_defaults(client):
    listed = {e["name"]: e for e in client.get("/api/v1/estimates").json()["estimates"]}
    assert list(listed) == [e.name for e in registry.list_estimates()]
    inputs = {i["name"]: i for i in listed["inference-memory"]["inputs"]}
    assert inputs["context"]["unit"] == "token"
    assert inputs["context"]["minimum"] == 1
    assert "fp8" in inputs["weights"]["choices"]
    assert inputs["gpu"]["default"] == "h100-sxm5-80"


def test_the_openapi_document_describes_every_estimate_both_ways(client):
    document = client.get("/api/v1/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    for entry in registry.list_estimates():
        path = document["paths"][f"/api/v1/estimates/{entry.name}"]
        names = [p["name"] for p in path["get"]["parameters"]]
        assert names == list(input_specs(entry.inputs_type))
        schema = path["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert schema["$ref"].rsplit("/", 1)[1] in document["components"]["schemas"]


def test_every_reference_of_the_openapi_document_leads_somewhere(client):
    document = client.get("/api/v1/openapi.json").json()

    for reference in references(document):
        place = document
        for part in reference.removeprefix("#/").split("/"):
            place = place[part]


def test_the_description_of_an_input_tells_the_units_of_numbers_and_of_strings():
    fields = build_pydantic_model_of_inputs(registry.find_estimate("training-run")).model_fields
    descriptions = [field.description or "" for field in fields.values()]
    assert any("in s; a number in a string without a unit is in days." in d for d in descriptions)
    assert any("0.1 is 10%" in description for description in descriptions)
    assert not any("in ;" in description for description in descriptions)


def test_the_schema_of_the_inputs_knows_types_and_unknown_names():
    model = build_pydantic_model_of_inputs(registry.find_estimate("inference-memory"))
    assert model().model_dump()["gpu"] == "h100-sxm5-80"
    with pytest.raises(ValidationError):
        model(color="red")


@each_of_sample("kind", ["models", "accelerators", "systems", "networks"], 2)
def test_a_catalogue_is_listed_in_base_units(client, kind):
    answer = client.get(f"/api/v1/catalogue/{kind}").json()
    assert len({row["id"] for row in answer[kind]}) == len(answer[kind]) > 5


def test_the_catalogue_of_accelerators_says_source_and_date(client):
    answer = client.get("/api/v1/catalogue/accelerators").json()
    h100 = next(a for a in answer["accelerators"] if a["id"] == "h100-sxm5-80")
    assert h100["memory"] == 80e9
    assert answer["units"]["memory"] == "B"
    assert h100["source"]
    assert h100["read_on"]


def test_a_catalogue_that_is_none_is_not_found(client):
    assert client.get("/api/v1/catalogue/horses").status_code == 404


def test_the_page_for_people_names_every_address(client):
    page = client.get("/api")
    assert page.status_code == 200
    for entry in registry.list_estimates():
        assert f"/api/v1/estimates/{entry.name}" in page.text
