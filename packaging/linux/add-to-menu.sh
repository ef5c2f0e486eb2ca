#!/bin/sh
# Adds MoE Launcher to this user's menu and opens .gguf files with it; --remove undoes that.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
share=${XDG_DATA_HOME:-$HOME/.local/share}

each_file() {
    (cd "$here/share" && find . -type f)
}

if [ "${1:-}" = --remove ]; then
    each_file | while read -r file; do rm -f "$share/$file"; done
else
    each_file | while read -r file; do
        mkdir -p "$share/$(dirname "$file")"
        cp "$here/share/$file" "$share/$file"
    done
    sed "s|^Exec=.*|Exec=\"$here/moelauncher\" %f|" "$here/share/applications/moelauncher.desktop" \
        > "$share/applications/moelauncher.desktop"
fi
for command in "update-mime-database $share/mime" "update-desktop-database $share/applications"; do
    ${command%% *} "${command#* }" 2>/dev/null || true
done
