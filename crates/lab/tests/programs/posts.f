# A store of documents: one is extended, one read, one of another set removed, until that is empty.
set $nfiles=4000
set $nthreads=1
set mode quit firstdone

define fileset name=posts,size=16k,entries=$nfiles,dirwidth=20,prealloc
define fileset name=old,size=16k,entries=$nfiles,dirwidth=20,prealloc

define process name=store
{
  thread name=writer,instances=$nthreads
  {
    flowop openfile name=open1,filesetname=posts,fd=1
    flowop appendfilerand name=extend,iosize=16k,fd=1
    flowop closefile name=close1,fd=1
    flowop openfile name=open2,filesetname=posts,fd=1
    flowop readwholefile name=read,fd=1,iosize=1m
    flowop closefile name=close2,fd=1
    flowop deletefile name=delete,filesetname=old
  }
}
