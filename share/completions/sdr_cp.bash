# SPDX-License-Identifier: BSD-2-Clause
# bash completion for sdr_cp(1).

_sdr_cp() {
	local cur prev words cword

	_init_completion || return
	case $prev in
	-S | --scheme)
		mapfile -t COMPREPLY < <(compgen -W "$("$1" --help 2>/dev/null |
			sed -n 's/.*--scheme.*repaired: \(.*\) (.*/\1/p' | tr '|' ' ')" -- "$cur")
		;;
	-d | --ib-dev) mapfile -t COMPREPLY < <(compgen -W "$(ls /sys/class/infiniband 2>/dev/null)" -- "$cur") ;;
	-e | --rsh) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
	--remote-path | -p | --port | -x | --gid-index | -r | --rate | -k | --chunk | -m | --mtu | -t | --rtt) ;;
	*)
		if [[ $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$("$1" --help 2>/dev/null |
				grep -oE -- '--[a-z-]+' | sort -u)" -- "$cur")
		else
			_filedir
			# One of the two may be a host's, or a host.
			mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -A hostname -- "$cur")
		fi
		;;
	esac
}

complete -F _sdr_cp sdr_cp
