"""The exam's own words lead to the glossary entry that explains them."""

import pytest

from app.content.course import Course
from app.lessons.search import search_course

WORDS = {
    "accelerated computing": "accelerated-computing",
    "burn-in": "burn-in",
    "compliance": "compliance",
    "computer vision": "computer-vision",
    "decommissioning": "decommissioning",
    "edge computing": "edge-computing",
    "energy efficiency": "energy-efficiency",
    "energy-efficient computing": "energy-efficiency",
    "few-shot": "few-shot-prompting",
    "gradient checkpointing": "activation-checkpointing",
    "HPC": "high-performance-computing-hpc",
    "MPI": "message-passing-interface-mpi",
    "multi-cloud": "multi-cloud",
    "multicloud": "multi-cloud",
    "natural language processing": "natural-language-processing-nlp",
    "NLP": "natural-language-processing-nlp",
    "observability": "observability",
    "parallel computing": "parallel-computing",
    "performance per watt": "performance-per-watt",
    "prompt engineering": "prompt-engineering",
    "RBAC": "role-based-access-control-rbac",
    "role-based": "role-based-access-control-rbac",
    "self-attention": "self-attention",
    "SLO": "service-level-objective-slo",
    "sustainability": "sustainability",
    "WUE": "water-usage-effectiveness-wue",
}


@pytest.mark.parametrize("words", WORDS)
def test_a_word_of_the_exam_leads_to_its_entry(shipped: Course, words: str):
    terms = [hit.url for hit in search_course(shipped, words).hits if hit.kind == "term"]

    assert terms[0] == f"/glossary#{WORDS[words]}"
