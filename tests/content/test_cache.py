"""What is kept of files that were read falls away with the code that read them."""

import grimp

from app.content.parse_cache import VERSIONED_PACKAGES


def test_the_code_of_every_room_that_reading_goes_through_counts():
    graph = grimp.build_graph("app")
    through = graph.find_upstream_modules("app.content", as_package=True)
    rooms = {name.split(".")[1] for name in through if "." in name}

    assert {"content", *rooms} == set(VERSIONED_PACKAGES)
