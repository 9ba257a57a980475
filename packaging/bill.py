#!/usr/bin/env python3
"""What is linked into a binary of holdup: a bill of materials, and the licences.

    packaging/bill.py TARGET BILL.cdx.json LICENCES.txt

Asks cargo for the packages that a build for TARGET links in, and writes them as CycloneDX 1.5 and,
with the text of each licence file they carry, as one text. cargo-cyclonedx and cargo-about do the
same and more; both take longer to build than holdup itself. The same lock file and
SOURCE_DATE_EPOCH give the same bytes.
"""

import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent
# A package of the tree: its depth, name, version, and where it lies if that is a folder of ours.
LINE = re.compile(r"^(\d+)(\S+) v(\S+?)(?: \((.*?)\))?( \(\*\))?$")
GPL = re.compile(r"GNU (LESSER )?GENERAL PUBLIC LICENSE")
LICENCE_FILE = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense)", re.I)


def cargo(*words):
    done = subprocess.run(["cargo", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return done.stdout.decode()


def linked(target):
    """Packages by name and version, each with those it is built on. Macros and what only builds
    or tests stay out: they leave nothing of theirs in the binary."""
    uses, above = {}, []
    tree = cargo("tree", "--locked", "-p", "holdup", "--target", target, "--prefix", "depth",
                 "--edges", "normal,no-proc-macro")
    for line in tree.splitlines():
        if not line:
            continue
        depth, name, version = LINE.match(line).group(1, 2, 3)
        package = (name, version)
        del above[int(depth):]
        if above:
            uses[above[-1]].add(package)
        uses.setdefault(package, set())
        above.append(package)
    return uses


def described(target):
    """What the manifests say, by name and version."""
    # Of other platforms not even the archives need be there.
    said = cargo("metadata", "--locked", "--format-version", "1", "--filter-platform", target)
    packages = json.loads(said)["packages"]
    return {(p["name"], p["version"]): p for p in packages}


def checksums():
    """SHA-256 of each archive of the registry, from the lock file."""
    found, package = {}, {}
    for line in (ROOT / "Cargo.lock").read_text().splitlines():
        if line == "[[package]]":
            package = {}
        key, _, value = line.partition(" = ")
        package[key] = value.strip('"')
        if key == "checksum":
            found[package["name"], package["version"]] = package[key]
    return found


def expression(package):
    # Old manifests write MIT/Apache-2.0.
    return package["license"].replace("/", " OR ")


def name_of(package):
    name, version = package
    return f"pkg:cargo/{name}@{version}"


def component(package, manifest, sums):
    entry = {
        "type": "library",
        "bom-ref": name_of(package),
        "name": package[0],
        "version": package[1],
        "licenses": [{"expression": expression(manifest)}],
        "purl": name_of(package),
    }
    if manifest["description"]:
        entry["description"] = " ".join(manifest["description"].split())
    if package in sums:
        entry["hashes"] = [{"alg": "SHA-256", "content": sums[package]}]
    if manifest["repository"] and package in sums:
        entry["externalReferences"] = [{"type": "vcs", "url": manifest["repository"]}]
    return entry


def standard_library():
    """rustc's own part of every binary: a component without a package of the registry."""
    version = subprocess.run(["rustc", "--version"], check=True, stdout=subprocess.PIPE)
    version = version.stdout.decode().split()[1]
    return {
        "type": "library",
        "bom-ref": f"rust-std@{version}",
        "name": "rust-std",
        "version": version,
        "description": "The standard library of Rust, with the C library of the target if static",
        "licenses": [{"expression": "MIT OR Apache-2.0"}],
    }


def bill(target, uses, manifests, sums):
    program = next(package for package in uses if package[0] == "holdup")
    std = standard_library()
    made = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    time = datetime.datetime.fromtimestamp(made, datetime.timezone.utc)
    others = sorted(package for package in uses if package != program)
    depends = [{"ref": name_of(p), "dependsOn": sorted(map(name_of, uses[p]))} for p in sorted(uses)]
    for entry in depends:
        if entry["ref"] == name_of(program):
            entry["dependsOn"].append(std["bom-ref"])
    content = "\n".join(map(name_of, sorted(uses))) + target + std["version"]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                **component(program, manifests[program], sums),
                "type": "application",
                "properties": [{"name": "cargo:target", "value": target}],
            },
        },
        "components": [component(p, manifests[p], sums) for p in others] + [std],
        "dependencies": depends,
    }


def licence_texts(manifest):
    """The licence files of a package, also of the C sources that some carry one folder below."""
    folder = pathlib.Path(manifest["manifest_path"]).parent
    files = [f for f in (*folder.glob("*"), *folder.glob("*/*")) if LICENCE_FILE.match(f.name)]
    return [f for f in sorted(files) if f.is_file() and f.stat().st_size < 100_000]


def licences(uses, manifests, sums):
    """Every package with its licence, then each text once, with those whose it is."""
    foreign = sorted(package for package in uses if package in sums)
    lines = ["Packages that are linked into holdup, and the licences they may be used under.", ""]
    owners, without = {}, []
    for package in foreign:
        manifest = manifests[package]
        lines.append(f"{package[0]} {package[1]}: {expression(manifest)}")
        texts = licence_texts(manifest)
        for file in texts:
            text = file.read_text(errors="replace").replace("\r\n", "\n").strip()
            # zstd and xz carry those of their other choices, or of their tools, as well.
            if "GPL" not in manifest["license"] and GPL.match(text):
                continue
            owners.setdefault(text, []).append(f"{package[0]} ({file.name})")
        if not texts:
            without.append(f"{package[0]} {package[1]}")
    lines.append("rust-std: MIT OR Apache-2.0, with the parts that Rust's COPYRIGHT lists")
    if without:
        lines += ["", "Without a text of their own in the package: " + ", ".join(without)]
    for text, names in sorted(owners.items(), key=lambda item: item[1]):
        lines += ["", "=" * 80, ", ".join(names), "=" * 80, "", text]
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    target, to_bill, to_licences = sys.argv[1:]
    uses, manifests, sums = linked(target), described(target), checksums()
    with open(to_bill, "w") as out:
        json.dump(bill(target, uses, manifests, sums), out, indent=2, ensure_ascii=False)
        out.write("\n")
    with open(to_licences, "w") as out:
        out.write(licences(uses, manifests, sums))


if __name__ == "__main__":
    main()
