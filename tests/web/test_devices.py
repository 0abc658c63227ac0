"""What a browser is called in the list of sessions."""

import pytest

from app.web.visitor import describe_user_agent

ANDROID = "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like "
WINDOWS = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like "
MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, "


@pytest.mark.parametrize(
    ("said", "name"),
    [
        (
            "Mozilla/5.0 (X11; Linux x86_64) Gecko/2010 Firefox/140.0",
            "Firefox on Linux",
        ),
        (f"{ANDROID}Gecko) Chrome/140.0 Mobile Safari/537.36", "Chrome on Android"),
        (f"{WINDOWS}Gecko) Chrome/140.0 Safari/537.36 Edg/140.0", "Edge on Windows"),
        (f"{MAC}like Gecko) Version/18.0 Safari/605.1.15", "Safari on macOS"),
        ("curl/8.1", "curl"),
        ("", "Unknown browser"),
        ("<script>alert(1)</script>" * 1000, "Unknown browser"),
    ],
)
def test_a_browser_is_named_by_what_its_owner_calls_it(said: str, name: str):
    assert describe_user_agent(said) == name
