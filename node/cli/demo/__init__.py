"""The demonstration: two real nodes on this machine do the main job, and every line of the report is checked, not
scripted."""
