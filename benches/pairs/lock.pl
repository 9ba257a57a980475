% Three threads of SWI-Prolog compute in a mutex: main(one) has one for all, main(own) one for each.
spin(0) :- !.
spin(N) :- M is N - 1, _ is N * N mod 7, spin(M).

work(_, 0) :- !.
work(Lock, N) :- with_mutex(Lock, spin(6000)), spin(600), M is N - 1, work(Lock, M).

lock(one, _, one).
lock(own, K, Lock) :- atom_concat(lock, K, Lock).

main(How) :-
    findall(Thread, (between(1, 3, K), lock(How, K, Lock), thread_create(work(Lock, 900), Thread, [])), Threads),
    maplist(thread_join, Threads).
