#!/bin/sh
# The nodes of the lab, as it stands now.
exec "$MOLECULE_PROJECT_DIRECTORY/lab/hosts.sh"
