"""The lab: real nodes and a real cluster on one machine without containers or virtualisation hardware. See README.md."""
