"""What each server of the tests is a copy of: the app as it is once it has served.

To import it costs most; then come its templates, which are compiled when a page is
first made of them, and whatever is imported when the first course is read.
"""

import gc
from pathlib import Path

import app.cli.content
import app.cli.people
import app.cli.server  # noqa: F401
from app.content.live_courses import LiveCourse
from app.content.parse_cache import compute_parser_code_hash
from app.main import list_routes_in_matching_order, load_assets
from tests.kept import keep_compiled

compute_parser_code_hash()
LiveCourse(Path(__file__).parents[1] / "courses" / "tiny").get_current_course()
list_routes_in_matching_order(authoring=True)
_templates = load_assets().templates
keep_compiled(_templates)
for _name in _templates.list_templates():
    _templates.get_template(_name)
gc.freeze()  # a copy need not look through what all of them share
