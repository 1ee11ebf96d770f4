# bash completion for pawl: commands, options, and the names of locks that are held now.
# shellcheck shell=bash

_pawl_keys()
{
    pawl ls --json --connect-timeout 200ms 2>/dev/null |
        grep -o '"key":"[^"\\]*"' | cut -d '"' -f 4
}

_pawl()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local command='' i words
    local commands='run ls show watch doctor break acquire release hold lease acl verify bench help'
    local common='--url --config --prefix --username --password-file --password-env --ca-file
        --cert-file --key-file --server-name --insecure --connect-timeout --command-timeout --json
        --quiet --verbose --help --version'

    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --)
            # What follows is the job's own command line.
            if declare -F _command_offset >/dev/null; then
                _command_offset $((i + 1))
            fi
            return
            ;;
        -*) ;;
        *)
            [[ -n $command ]] || command=${COMP_WORDS[i]}
            ;;
        esac
    done
    case $prev in
    --config | --password-file | --ca-file | --cert-file | --key-file | --audit | --metrics)
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    --on-busy) words='fail skip' ;;
    --leftover) words='stop wait leave' ;;
    --symptom) words='stuck oversold twice never' ;;
    --for-pid)
        mapfile -t COMPREPLY < <(compgen -W "$(ps -eo pid=)" -- "$cur")
        return
        ;;
    *) words='' ;;
    esac
    if [[ -z $words && $cur == -* ]]; then
        words=$common
        case $command in
        run) words+=' --wait --lease --max-hold --grace --no-renew --label --on-busy --exit --owner
            --new-owner --with-parent --pass-url --leftover --keep-for-daemon' ;;
        ls) words+=' --strings' ;;
        watch) words+=' --every --plain --strings' ;;
        doctor) words+=' --symptom --production --read-only' ;;
        break) words+=' --token --yes --now --audit' ;;
        acquire) words+=' --wait --lease --max-hold --label --owner' ;;
        hold) words+=' --for-pid --background --wait --lease --max-hold --label --owner' ;;
        lease) words+=' --for --every --metrics' ;;
        acl) words+=' --user --operator' ;;
        verify) words+=' --clients --seconds --hold' ;;
        bench) words+=' --seconds --locks' ;;
        esac
    elif [[ -z $words && -z $command ]]; then
        words=$commands
    elif [[ -z $words ]]; then
        case $command in
        help) words=$commands ;;
        run | show | doctor | break | release | lease | verify)
            local IFS=$'\n'
            mapfile -t COMPREPLY < <(compgen -W "$(_pawl_keys)" -- "$cur")
            return
            ;;
        esac
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _pawl pawl
