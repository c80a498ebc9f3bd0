"""Prints the Homebrew formula of a release: static programs on Linux, a build from the source archive on macOS.

deploy/release/formula.py VERSION URL SHA256SUMS    # URL: the folder of the published files
"""

import sys
from pathlib import Path

FORMULA = """\
class Uncork < Formula
  desc "Congestion control you can choose, prove and ship"
  homepage "{homepage}"
  version "{version}"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    url "{url}/uncork-{version}-source.tar.gz"
    sha256 "{source}"
    depends_on "rust" => :build
  end

  on_linux do
{programs}  end

  def install
    if OS.mac?
      system "cargo", "install", *std_cargo_args(path: "crates/tools/cli")
      system "deploy/manuals.sh", buildpath/"manuals", bin/"uncork"
      man1.install Dir["manuals/man/*.1"]
    else
      bin.install "uncork"
      man1.install Dir["man/*.1"]
    end
    generate_completions_from_executable(bin/"uncork", "completions")
  end

  test do
    assert_match "cubic", shell_output("#{{bin}}/uncork compare --size 100kB --seeds 1")
  end
end
"""
PROGRAM = """\
    on_{processor} do
      url "{url}/{file}"
      sha256 "{sum}"
    end
"""
PROCESSORS = {"x86_64": "intel", "aarch64": "arm"}


def main() -> None:
    version, url, sums = sys.argv[1:]
    lines = [line.split() for line in Path(sums).read_text().splitlines()]
    of_file = {file: digest for digest, file in lines}
    programs = []
    for machine, processor in PROCESSORS.items():
        file = f"uncork-{version}-{machine}-unknown-linux-musl.tar.gz"
        if file in of_file:
            programs.append(PROGRAM.format(processor=processor, url=url, file=file, sum=of_file[file]))
    source = of_file[f"uncork-{version}-source.tar.gz"]
    homepage = url.partition("/releases/")[0]
    print(FORMULA.format(homepage=homepage, url=url, version=version, source=source, programs="".join(programs)), end="")


main()
