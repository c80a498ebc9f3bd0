#!/usr/bin/env bash
# Writes a container image as an OCI archive, without a daemon: the static program and its licences, and nothing else.
#   deploy/release/image.sh FOLDER ARCHITECTURE ARCHIVE     FOLDER: of the program; ARCHITECTURE: amd64 or arm64; SOURCE_DATE_EPOCH is its time
#   skopeo copy oci-archive:ARCHIVE docker://REGISTRY/uncork:0.1.0     publishes it
# Needs umoci. deploy/Dockerfile makes the same image from the sources, with Docker.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$1 architecture=$2 archive=$3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
image=$work/image:$(python3 .ci/versions.py print)
date=$(date --utc --date="@$SOURCE_DATE_EPOCH" +%FT%TZ)
install -D "$folder/uncork" "$work/root/usr/bin/uncork"
install -D --mode=644 --target-directory="$work/root/usr/share/doc/uncork" "$folder"/{LICENSE-APACHE,LICENSE-MIT,THIRD-PARTY.txt}
find "$work/root" -exec touch --date="@$SOURCE_DATE_EPOCH" {} +

umoci init --layout "$work/image"
umoci new --image "$image"
umoci config --image "$image" --os linux --architecture "$architecture" --created "$date" --no-history --config.user 65534:65534 \
    --config.entrypoint /usr/bin/uncork --config.cmd --help
umoci insert --rootless --image "$image" --history.created "$date" "$work/root" /
# The steps before the last one.
umoci gc --layout "$work/image"
tar --create --directory "$work/image" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+rw,go=rX \
    --format=ustar . >"$archive"
