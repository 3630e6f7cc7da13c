# SPDX-License-Identifier: BSD-2-Clause
# bash completion for verbena(1). Settings, keys and scenarios come from the program itself.

# The settings' names, lower case as --set takes them.
_verbena_settings() {
	"$1" help 2>/dev/null | sed -n 's/^  VERBENA_\([A-Z0-9_]*\) .*/\L\1/p'
}

# The keys of a scenario, as SECTION.KEY.
_verbena_sim_keys() {
	"$1" sim --keys 2>/dev/null | awk '
		/^\[/ { section = substr($1, 2); sub(/\].*/, "", section) }
		/^  [a-z]/ { print section "." $1 }'
}

_verbena_scenarios() {
	"$1" sim --list 2>/dev/null | awk '/^  [a-z0-9]/ { print $1 }'
}

# KEY=: no space behind it, for the value follows.
_verbena_assignment() {
	compopt -o nospace
	mapfile -t COMPREPLY < <(compgen -S = -W "$1" -- "$cur")
}

_verbena_run() {
	local i

	# Where the command begins, its own completion takes over.
	for ((i = 2; i < cword; i++)); do
		case ${words[i]} in
		--pcap | --impair | --faults | --set) ((i++)) ;;
		--) ((i++)) && break ;;
		-*) ;;
		*) break ;;
		esac
	done
	if ((i < cword)); then
		_command_offset "$i"
		return
	fi
	case $prev in
	--pcap | --faults) _filedir ;;
	--set) _verbena_assignment "$(_verbena_settings "${words[0]}")" ;;
	--impair)
		_verbena_assignment "drop burst dup reorder corrupt delay jitter rate limit seed ce"
		;;
	*)
		if [[ $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "--pcap --impair --faults --set --preload --help" -- "$cur")
		else
			_command_offset "$cword"
		fi
		;;
	esac
}

_verbena_sim() {
	case $prev in
	--set | --sweep) _verbena_assignment "$(_verbena_sim_keys "${words[0]}")" ;;
	--report) _filedir -d ;;
	--seed | --jobs | -j) ;;
	*)
		if [[ $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$("${words[0]}" sim --help 2>/dev/null |
				grep -oE -- '--[a-z-]+' | sort -u)" -- "$cur")
		else
			_filedir ini
			mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(
				compgen -W "$(_verbena_scenarios "${words[0]}")" -- "$cur")
		fi
		;;
	esac
}

_verbena() {
	local cur prev words cword

	_init_completion -n = || return
	if ((cword == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "run devices stat qps top export fault sim sdr help --help --version" -- "$cur")
		return
	fi
	case ${words[1]} in
	run) _verbena_run ;;
	sim) _verbena_sim ;;
	sdr) mapfile -t COMPREPLY < <(compgen -W "model plan ring figures $("${words[0]}" sdr --help 2>/dev/null |
		grep -oE -- '--[a-z][a-z-]*' | sort -u)" -- "$cur") ;;
	devices) mapfile -t COMPREPLY < <(compgen -W "--json --help" -- "$cur") ;;
	help) mapfile -t COMPREPLY < <(compgen -W "run devices stat qps top export fault sim sdr" -- "$cur") ;;
	export)
		case $prev in
		--sysfs | -s) _filedir -d ;;
		--textfile | -t) _filedir ;;
		--name | -n | --prometheus | -p) ;;
		*) mapfile -t COMPREPLY < <(compgen -W "--prometheus --textfile --sysfs --name --help" -- "$cur") ;;
		esac
		;;
	top) mapfile -t COMPREPLY < <(compgen -W "--once --batch --delay --help" -- "$cur") ;;
	stat | qps)
		if [[ $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$("${words[0]}" "${words[1]}" --help 2>/dev/null |
				grep -oE -- '--[a-z-]+' | sort -u)" -- "$cur")
		else
			_pids
		fi
		;;
	esac
}

complete -F _verbena verbena
