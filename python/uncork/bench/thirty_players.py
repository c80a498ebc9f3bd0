"""The players of `thirty.py`: mpv, which plays music from nginx in real time.

The music is noise of six seconds as HLS: FLAC with 192 kHz and 24 bits, 4.6 Mbit/s, in segments of a second,
made by ffmpeg. mpv reads ahead as fast as it can, and plays at the pace of a device, to none. It takes
all segments over one connection (`http_multiple=0`): by itself it would take turns with two, and records of
connections below 3 MB are not compared. Each network has one player at a time, and each play is another user.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from live import NotPossibleError

SONG, SONG_SECONDS = "song.m3u8", 6

# A route says which address the player has: none of its options does.
PLAY = """trap 'trap - TERM; kill 0' TERM
while read -r address url; do
    ip route replace {server} via {gateway} src "$address"
    began=$(date +%s%N)
    timeout --foreground {limit} mpv --no-config --load-scripts=no --ytdl=no --no-video --ao=null \\
        --demuxer-lavf-o=http_multiple=0 --no-terminal "$url" </dev/null &
    wait $!
    echo "$url $? $((($(date +%s%N) - began) / 1000000))e-3"
done <{plays}
"""


def players_are_missing() -> str | None:
    """Why nothing can be played here, or None."""
    missing = [name for name in ("ffmpeg", "mpv") if not shutil.which(name)]
    return f"there is no {' and no '.join(missing)}: apt-get install {' '.join(missing)}" if missing else None


def make_song(directory: Path) -> None:
    """The playlist and its segments."""
    noise = f"anoisesrc=r=192000:d={SONG_SECONDS}:seed=1:a=0.9"
    command = ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", noise, "-ac", "2", "-sample_fmt", "s32"]
    command += ["-c:a", "flac", "-strict", "-2", "-f", "hls", "-hls_segment_type", "fmp4", "-hls_time", "1"]
    command += ["-hls_playlist_type", "vod", str(directory / SONG)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise NotPossibleError(f"ffmpeg made no music: {done.stderr.strip()}")


def write_plays(out: Path, number: int, urls: Sequence[str], addresses: Sequence[str]) -> None:
    """What a network's player is to play, from which address each time."""
    lines = [f"{address} {url}\n" for url, address in zip(urls, addresses, strict=True)]
    (out / f"{number}.plays").write_text("".join(lines))


def play(out: Path, number: int, server: str, limit: int) -> list[str]:
    """Plays these, one after the other; a line for each: address, exit status and seconds."""
    plays = out / f"{number}.plays"
    gateway = f"100.64.{number}.1"
    return ["sh", "-c", PLAY.format(server=server, gateway=gateway, limit=limit, plays=plays)]
