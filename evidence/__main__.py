"""`python -m evidence`: compute every reference case, print the errors, and save the report."""

from evidence.accuracy.export import PATH, format_accuracy_json
from evidence.accuracy.report import compute_project_report, format_report

print(format_report(compute_project_report()))
PATH.write_text(format_accuracy_json(compute_project_report()), encoding="utf-8")
