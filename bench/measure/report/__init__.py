"""Reports: documents made only from the files of a run. `write` makes them; `model` holds their data."""
