# The program comes from the server over TLS, and the hash of it is looked at before it
# is run. The token stands in files of $dir only, which this user alone may read.
give_up() {
	echo "$1" >&2
	echo "$1" >&3
	rm -rf "$dir/connection" "$dir/headers" "$dir/curl" "$dir/wget" "$dir/fairway"
	exit 69
}

mask=$(umask)
umask 077
mkdir "$dir/none" || give_up "$dir cannot be written to"
cat >"$dir/authority" <<'FAIRWAY'
@AUTHORITY@
FAIRWAY
cat >"$dir/headers" <<'FAIRWAY'
@HEADERS@
FAIRWAY
cat >"$dir/connection" <<'FAIRWAY'
@CONNECTION@
FAIRWAY
sed 's/.*/header = "&"/' "$dir/headers" >"$dir/curl"
sed 's/.*/header = &/' "$dir/headers" >"$dir/wget"

program=@HASH@
size=@SIZE@
path="@PATH@$program?machine=$(uname -m)"

# No authority counts but that of the server.
SSL_CERT_FILE=$dir/authority SSL_CERT_DIR=$dir/none
bring() (
	export SSL_CERT_FILE SSL_CERT_DIR
	"with_$1" "$2" </dev/null
)

# Each ends with 22 where the server has answered, and with no.
with_curl() {
	curl -q --silent --show-error --fail --proto =https --noproxy '*' --config "$dir/curl" \
		--cacert "$dir/authority" --capath "$dir/none" --connect-timeout 10 --speed-time 60 --speed-limit 1 \
		--output "$dir/fairway" "https://$1$path"
}

with_wget() {
	wget --config="$dir/wget" --no-verbose --no-proxy --tries=1 --timeout=30 \
		--ca-certificate="$dir/authority" --ca-directory="$dir/none" \
		--output-document="$dir/fairway" "https://$1$path"
	case $? in
	0) return 0 ;;
	6 | 8) return 22 ;;
	esac
	return 1
}

with_python3() {
	python3 -I - "$1" "$dir" "$path" <<'FAIRWAY'
import http.client, shutil, ssl, sys
address, folder, path = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.load_verify_locations(folder + "/authority")
server = http.client.HTTPSConnection(address, timeout=30, context=context)
with open(folder + "/headers") as lines:
    headers = dict(line.rstrip("\n").split(": ", 1) for line in lines)
try:
    server.request("GET", path, headers=headers)
    answer = server.getresponse()
except (OSError, http.client.HTTPException) as error:
    sys.exit("python3: %s" % error)
if answer.status != 200:
    print("python3: HTTP status", answer.status, answer.read(1000).decode(errors="replace"), file=sys.stderr)
    sys.exit(22)
with open(folder + "/fairway", "wb") as program:
    shutil.copyfileobj(answer, program)
FAIRWAY
}

with_openssl() {
	{
		printf 'GET %s HTTP/1.0\r\nHost: fairway\r\n' "$path"
		sed "s/\$/$(printf '\r')/" "$dir/headers"
		printf '\r\n'
	} | openssl s_client -quiet -connect "$1" -servername @NAME@ -verify_hostname @NAME@ \
		-CAfile "$dir/authority" -verify_return_error >"$dir/answer"
	line=$(head -n 1 "$dir/answer" | LC_ALL=C tr -cd '[:print:]')
	tail -c "$size" "$dir/answer" >"$dir/fairway"
	rm -f "$dir/answer"
	case $line in
	*' 200 '*) return 0 ;;
	'') return 1 ;;
	esac
	echo "openssl: $line" >&2
	return 22
}

hash_of() {
	if command -v sha256sum >/dev/null; then
		sha256sum
	elif command -v shasum >/dev/null; then
		shasum -a 256
	elif command -v openssl >/dev/null; then
		openssl dgst -sha256 -r
	else
		python3 -I -c 'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())'
	fi <"$1" | cut -c 1-64
}

tools=
for tool in curl wget python3 openssl; do
	command -v $tool >/dev/null && tools="$tools $tool"
done
[ -n "$tools" ] || give_up "this node has none of curl, wget, python3 and openssl, one of which must fetch the program from the server"

fetch() {
	for address in @ADDRESSES@; do
		for tool in $tools; do
			rm -f "$dir/fairway"
			bring $tool "$address"
			case $? in
			0) [ "$(hash_of "$dir/fairway")" = $program ] && return 0
				echo "what $tool got from $address is not the program: its hash is another" >&2 ;;
			22) give_up "the server refuses to give its program to this launch" ;;
			esac
		done
	done
	return 1
}

# The server may be away for a while: it is asked for about @PATIENCE@ minutes.
pause=5
until fetch; do
	[ $pause -le 160 ] || give_up "the server was not reached at any of $(echo @ADDRESSES@): this node must reach one of them"
	echo "the server is tried again in $pause seconds" >&2
	sleep $pause
	pause=$((pause * 2))
done
chmod 500 "$dir/fairway"
"$dir/fairway" --version >/dev/null || give_up "programs in $dir cannot be run: set scratch of the site to a folder where they can"
rm -f "$dir/headers" "$dir/curl" "$dir/wget"
umask "$mask"
exec "$dir/fairway" pilot --connect - @ARGUMENTS@--brought "$dir" <"$dir/connection" 3>&-
