"""python -m docs.reference: write every document that is made from the code."""

from docs.reference import api, authoring, house

for made in (api, authoring, house):
    made.PATH.write_text(made.document(), encoding="utf-8")
for name, drawing in house.pictures().items():
    (house.PICTURES / name).write_text(drawing, encoding="utf-8")
