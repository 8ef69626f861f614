# A mail server: a message is delivered and made stable, another is read and marked, one is read.
set $nfiles=4000
set $nthreads=16
set $messages=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)
set $growth=16k

define fileset name=box,size=$messages,entries=$nfiles,dirwidth=1000000,prealloc=80

define process name=server
{
  thread name=session,instances=$nthreads
  {
    flowop deletefile name=delete,filesetname=box
    flowop createfile name=deliver,filesetname=box,fd=1
    flowop appendfilerand name=fill,fd=1,iosize=$growth
    flowop fsync name=settle,fd=1
    flowop closefile name=close1,fd=1
    flowop openfile name=open2,filesetname=box,fd=1
    flowop readwholefile name=read2,fd=1,iosize=1m
    flowop appendfilerand name=mark,fd=1,iosize=$growth
    flowop fsync name=settle2,fd=1
    flowop closefile name=close2,fd=1
    flowop openfile name=open3,filesetname=box,fd=1
    flowop readwholefile name=read3,fd=1,iosize=1m
    flowop closefile name=close3,fd=1
  }
}
