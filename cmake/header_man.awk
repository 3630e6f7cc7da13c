# SPDX-License-Identifier: BSD-2-Clause
# awk -v prefix=verbena_sdr -f header_man.awk include/verbena/sdr.h man/verbena_sdr.3.in: the manual page of a library whose names
# have that prefix. What the header says of calls and attributes replaces the page's lines "@names@", "@synopsis@" and "@description@"; what comes before the header's first heading is left out.

# Text in mdoc(7), a sentence a line.
function say(text, line) {
	gsub(/[ \t]+/, " ", text)
	gsub(/^ | $/, "", text)
	gsub(/`/, "'", text)
	gsub(/\\/, "\\e", text)
	while (text != "") {
		line = match(text, /\. [A-Z]/) ? substr(text, 1, RSTART) : text
		text = substr(text, length(line) + 2)
		out = out (line ~ /^[.']/ ? "\\&" : "") line (line ~ /[.:]$/ ? "" : ".") "\n"
	}
}

# Calls that share a comment.
function flush() {
	out = out heads
	if (heads != "")
		say(told)
	heads = told = ""
}

function list(wanted) {
	flush()
	if (listed && !wanted)
		out = out ".El\n"
	if (!listed && wanted)
		out = out ".Bl -tag -width indent\n"
	listed = wanted
}

# "int f(const struct x *, size_t *size)"
function call(text, name, args, arg, n, i) {
	gsub(/[ \t]+/, " ", text)
	match(text, prefix "_[a-z_]+\\(")
	name = substr(text, RSTART, RLENGTH - 1)
	args = substr(text, RSTART + RLENGTH)
	text = substr(text, 1, RSTART - 1)
	sub(/ $/, "", text)
	sub(/\).*/, "", args)
	names = names (names == "" ? "" : " ,\n") ".Nm " name
	synopsis = synopsis ".Ft \"" text "\"\n.Fn " name
	n = split(args, arg, /, /)
	for (i = 1; i <= n; i++)
		synopsis = synopsis " \"" arg[i] "\""
	synopsis = synopsis "\n"
	if (comment != "" || apart)
		flush()
	if (!listed)
		list(1)
	heads = heads ".It Fn " name "\n"
	told = told comment
	comment = ""
	apart = 0
}

# A member or constant, with the comment before or behind it.
function member(text, behind) {
	behind = ""
	if (match(text, /\/\*.*\*\//))
		behind = substr(text, RSTART + 2, RLENGTH - 4)
	sub(/[ \t]*\/\*.*/, "", text)
	gsub(/^[ \t]+|[;,]$/, "", text)
	if (text == "")
		return
	out = out ".It Vt \"" text "\"\n"
	say(comment != "" ? comment : behind)
	comment = ""
}

FNR == NR && /^\/\* ---- / {
	begun = 1
	list(0)
	sub(/^\/\* ---- /, "")
	sub(/ \*\/$/, "")
	out = out ".Ss " toupper(substr($0, 1, 1)) substr($0, 2) "\n"
	next
}
FNR == NR && !begun { next }
# A whole comment, or one behind a member, on one line.
FNR == NR && /\/\*/ {
	while ($0 !~ /\*\//) {
		if ((getline more) <= 0)
			break
		sub(/^[ \t]*(\* )?/, " ", more)
		$0 = $0 more
	}
}
FNR == NR && /^[ \t]*\/\*/ {
	sub(/^[ \t]*\/\*/, "")
	sub(/ *\*\/$/, "")
	comment = $0
	next
}
FNR == NR && /^(struct|enum) .*\{$/ {
	list(0)
	sub(/ \{$/, "")
	out = out (out ~ /\.Ss [^\n]*\n$/ ? "" : ".Pp\n") ".Vt " $0 ":\n"
	say(comment)
	comment = ""
	list(1)
	inside = 1
	next
}
FNR == NR && inside && /^\};/ { inside = 0; list(0); next }
FNR == NR && inside { member($0); next }
FNR == NR && $0 ~ "^(" toupper(prefix) "_API|static inline) " {
	text = $0
	sub("^(" toupper(prefix) "_API|static inline) ", "", text)
	while (text !~ /\)/) {
		if ((getline more) <= 0)
			break
		text = text " " more
	}
	call(text)
	next
}
FNR == NR {
	comment = ""
	apart = /^$/
	next
}
FNR == 1 { list(0) }
# "@example NAME@": a program of docs/examples, whole.
/^@example / {
	file = examples "/" substr($2, 1, length($2) - 1)
	print ".Bd -literal"
	while ((getline line < file) > 0) {
		gsub(/\\/, "\\e", line)
		gsub(/\t/, "    ", line)
		sub(/^[.']/, "\\&&", line)
		print line
	}
	close(file)
	print ".Ed"
	next
}
/^@names@$/ { print names; next }
/^@synopsis@$/ { printf "%s", synopsis; next }
/^@description@$/ { printf "%s", out; next }
{ print }
