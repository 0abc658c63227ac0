#!/bin/sh
# Runs headroom as the user and with the settings of the service: sudo headroom doctor
set -ae
. /etc/headroom.env
exec runuser -u headroom -- /opt/headroom/.venv/bin/headroom "$@"
