"""python -m docs.reference: write every document that is made from the code."""

from docs.reference import accuracy, api, authoring

for made in (accuracy, api, authoring):
    made.PATH.write_text(made.document(), encoding="utf-8")
