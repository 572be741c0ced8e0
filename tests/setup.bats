load common

# No package is installed here: dpkg-query, apt-get, sudo and id are stand-ins.
stand_ins() {
	mkdir bin
	for tool in cat tail; do ln -s "$(command -v $tool)" bin/$tool; done
	printf '#!/bin/sh\ncase " %s " in *" $4 "*) echo absent; exit 1 ;; esac\necho installed\n' "$1" >bin/dpkg-query
	printf '#!/bin/sh\necho %s\n' "$2" >bin/id
	printf '#!/bin/sh\necho "apt-get $*" >>%s/ran\n' "$PWD" >bin/apt-get

	ln -s "$(command -v env)" bin/env
	ln -s /bin/true bin/npm
	chmod +x bin/dpkg-query bin/id bin/apt-get
}

setup_sh() { PATH=$PWD/bin /bin/sh "$TOP/sh/setup.sh" "$@" </dev/null; }

@test "without root and without sudo the one line to run is printed, and the exit status is 2" {
	stand_ins 'bubblewrap libyaml-dev' 1000
	run -2 --separate-stderr setup_sh run
	assert_output 'apt-get update && apt-get install -y --no-install-recommends bubblewrap libyaml-dev'
	assert_regex "$stderr" 'run this line as root'
	assert_not_exists ran
}

@test "a sudo that would ask is not waited for without a terminal" {
	stand_ins bubblewrap 1000
	printf '#!/bin/sh\n[ "$1" != -n ] && { echo asked >>%s/ran; exit 0; }\nexit 1\n' "$PWD" >bin/sudo
	chmod +x bin/sudo
	run -2 --separate-stderr setup_sh run
	assert_not_exists ran
}

@test "root and who can sudo get what is lacking installed, and nothing else" {
	stand_ins bubblewrap 0
	run -0 setup_sh run
	assert_equal "$(tail -n 1 ran)" 'apt-get -qq install -y --no-install-recommends bubblewrap'
	rm ran
	printf '#!/bin/sh\n[ "$1" != -n ] || exit 0\necho sudo >>%s/ran\nexec "$@"\n' "$PWD" >bin/sudo
	chmod +x bin/sudo
	printf '#!/bin/sh\necho 1000\n' >bin/id
	run -0 setup_sh run
	assert_equal "$(grep -c sudo ran)" 2
	assert_equal "$(tail -n 1 ran)" 'apt-get -qq install -y --no-install-recommends bubblewrap'
}

@test "nothing is done when nothing is lacking" {
	stand_ins nothing 1000
	run -0 setup_sh test
	assert_output ""
	assert_not_exists ran
}

@test "the demo and the check end with 2 when the set-up cannot be made" {
	stand_ins bubblewrap 1000
	for tool in sh dirname sed grep mktemp readlink date; do ln -s "$(command -v $tool)" bin/$tool; done
	for script in demo check; do
		PATH=$PWD/bin run -2 --separate-stderr /bin/sh "$TOP/sh/$script.sh" </dev/null
		assert_regex "$output" '^apt-get update && apt-get install'
	done
}

@test "make uninstall takes away all that make install has made, and no other file" {
	prefix() { make -s -C "$TOP" BUILD="${BIN%/bin}" PREFIX="$BATS_TEST_TMPDIR/prefix" "$1"; }
	prefix install
	run -0 prefix/bin/amap-openshell --version
	assert_exists prefix/share/man/man5/amap-plan.5
	assert_file_not_exist prefix/lib/amap-openshell/sh/demo.sh
	# over an older version
	touch prefix/lib/amap-openshell/payload/of-old prefix/bin/mine
	prefix install
	assert_file_not_exist prefix/lib/amap-openshell/payload/of-old
	prefix uninstall
	run -0 find prefix ! -type d
	assert_output prefix/bin/mine
}
