"""Reports: documents made from the files of a run alone. `write` makes them; `model` holds the data that they show."""
